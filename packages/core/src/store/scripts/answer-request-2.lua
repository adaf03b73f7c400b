-- Gives a request that follows another the outcomes of an identical one, and ends it as succeeded.
-- KEYS: record, open. ARGV: id, channel, key tag, nonce, then the frame or mark of each item.
-- Returns 1: done. 0: it is not there, has ended, is too late, runs by itself by now, or is another one of that id.
local rec = KEYS[1]
local f = redis.call('HMGET', rec, 's', 'nonce', 'n', 'ttl', 'aft', 'fol', 'dl', 'fdl')
if f[1] ~= 'queued' or f[2] ~= ARGV[4] or not f[6] then return 0 end
local n, now = tonumber(f[3]), store_now()
if #ARGV ~= 4 + n or passed(f[7], now) or passed(f[8], now) then return 0 end
for item = 0, n - 1 do redis.call('HSET', rec, 'o:' .. item, ARGV[5 + item]) end
if n > 1 then redis.call('HSET', rec, 'done', n, 'n:ok', n) end
drop_payloads(rec, ARGV[3], ARGV[1], f[2], n)
local timed = f[7] ~= '0' or f[8]
local kept = end_request(rec, KEYS[2], ARGV[3], ARGV[1], 'succeeded', now, tonumber(f[4]), f[5], ARGV[2], timed)
expire_large(rec, ARGV[3], ARGV[1], f[2], n, kept)
redis.call('PUBLISH', ARGV[2], ARGV[1])
return 1
