-- Gives a lease back, if the caller still has it.
-- KEYS: lease. ARGV: token. Returns 1: given back. 0: another has it, or nobody.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
