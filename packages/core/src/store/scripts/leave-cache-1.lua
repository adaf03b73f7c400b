-- A request leads no longer: none will follow it from now on. Those that do are among its followers still.
-- KEYS: base of the cache of a model. ARGV: digest, lane, request id.
local lead = KEYS[1] .. ':lead:' .. ARGV[2] .. ':' .. ARGV[1]
local leader = string.match(redis.call('GET', lead) or '', '^%d (.+)$')
if leader ~= ARGV[3] then return 0 end
return redis.call('DEL', lead)
