-- Everything about the end of a request is done: from now on it is kept no longer than its retention.
-- Not where the id has a request of its own again by now: whatever is to be done about that one is still to be done.
-- KEYS: record, ended requests. ARGV: id, now, key tag, nonce of the request ('': its record was gone).
local rec = KEYS[1]
local f = redis.call('HMGET', rec, 'exp', 'nonce', 'n')
if f[2] and f[2] ~= ARGV[4] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
if not f[1] then return 0 end
local left = math.max(1, tonumber(f[1]) - tonumber(ARGV[2]))
expire_large(rec, ARGV[3], ARGV[1], f[2], tonumber(f[3]), left)
redis.call('PEXPIRE', rec, left)
return 1
