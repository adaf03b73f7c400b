-- Removes a request whose author was told that it was not accepted.
-- KEYS: record, open, all. ARGV: id, nonce of the acceptance, key tag.
-- Returns 1: removed. 0: not there, or accepted again since.
local rec = KEYS[1]
local f = redis.call('HMGET', rec, 'acc', 'nonce', 'n', 's')
if f[1] ~= ARGV[2] then return 0 end
if not TERMINAL[f[4]] then drop_payloads(rec, ARGV[3], ARGV[1], f[2], tonumber(f[3])) end
redis.call('DEL', rec)
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return 1
