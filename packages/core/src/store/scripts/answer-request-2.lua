-- Gives a request that follows another the outcomes of an identical one, and ends it as succeeded.
-- KEYS: record, open. ARGV: id, now, channel, key tag, nonce, then the frame or mark of each item.
-- Returns 1: done. 0: it is not there, has ended, runs by itself by now, or is another one of that id.
local rec = KEYS[1]
local f = redis.call('HMGET', rec, 's', 'nonce', 'n', 'ttl', 'aft', 'fol')
if f[1] ~= 'queued' or f[2] ~= ARGV[5] or not f[6] then return 0 end
local n, ttl = tonumber(f[3]), tonumber(f[4])
if #ARGV ~= 5 + n then return 0 end
for item = 0, n - 1 do redis.call('HSET', rec, 'o:' .. item, ARGV[6 + item]) end
if n > 1 then redis.call('HSET', rec, 'done', n, 'n:ok', n) end
drop_payloads(rec, ARGV[4], ARGV[1], f[2], n)
local kept = end_request(rec, KEYS[2], ARGV[4], ARGV[1], 'succeeded', tonumber(ARGV[2]), ttl, f[5], ARGV[3])
expire_large(rec, ARGV[4], ARGV[1], f[2], n, kept)
redis.call('PUBLISH', ARGV[3], ARGV[1])
return 1
