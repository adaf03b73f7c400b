-- Takes a lease, or prolongs it, unless another has it.
-- KEYS: lease. ARGV: token, time to live in milliseconds. Returns 1: the caller has it. 0: another has.
local holder = redis.call('GET', KEYS[1])
if holder and holder ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
