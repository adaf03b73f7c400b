-- The first call with an idempotency key makes the record of the key; whoever comes later finds what became of it.
-- KEYS: record of the key. ARGV: fingerprint, token of this call, seed for ids, lease in ms, time to live in ms.
-- Returns: 'first', seed. 'again', seed: the lease of the call before has run out, or it let go. 'busy', ms left of its
-- lease. 'mismatch': the key belongs to another call. 'answered', then status, headers, body and whether it is packed.
-- The time is that of Redis, so that clocks of hosts which differ do no harm.
local rec = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local f = redis.call('HMGET', rec, 'fp', 'seed', 'until', 'status', 'headers', 'body', 'packed')
if not f[1] then
  redis.call('HSET', rec, 'fp', ARGV[1], 'token', ARGV[2], 'seed', ARGV[3], 'until', now + ARGV[4])
  redis.call('PEXPIRE', rec, ARGV[5])
  return { 'first', ARGV[3] }
end
if f[1] ~= ARGV[1] then return { 'mismatch' } end
if f[4] then return { 'answered', f[4], f[5], f[6], f[7] } end
local left = tonumber(f[3]) - now
if left > 0 then return { 'busy', tostring(left) } end
redis.call('HSET', rec, 'token', ARGV[2], 'until', now + ARGV[4])
return { 'again', f[2] }
