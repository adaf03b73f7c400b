-- Everything about the end of a request is done: from now on it is kept no longer than its retention.
-- KEYS: record, ended requests. ARGV: id, now, key tag.
local rec = KEYS[1]
redis.call('ZREM', KEYS[2], ARGV[1])
local f = redis.call('HMGET', rec, 'exp', 'nonce', 'n')
if not f[1] then return 0 end
local left = math.max(1, tonumber(f[1]) - tonumber(ARGV[2]))
expire_large(rec, ARGV[3], ARGV[1], f[2], tonumber(f[3]), left)
redis.call('PEXPIRE', rec, left)
return 1
