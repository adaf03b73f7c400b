-- Lets a request that waits for the answer of another wait for that of a third, or run by itself.
-- KEYS: record. ARGV: nonce, id that it follows now, id that it is to follow ('': it runs by itself).
-- Returns 1: done. 0: it has ended, or someone else has changed it.
local rec = KEYS[1]
local f = redis.call('HMGET', rec, 's', 'nonce', 'fol')
if f[1] ~= 'queued' or f[2] ~= ARGV[1] or f[3] ~= ARGV[2] then return 0 end
if ARGV[3] ~= '' then
  redis.call('HSET', rec, 'fol', ARGV[3])
else
  -- Others may follow it from now on: its end concerns them.
  redis.call('HDEL', rec, 'fol')
  redis.call('HSET', rec, 'aft', '1')
end
return 1
