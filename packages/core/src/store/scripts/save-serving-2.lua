-- Stores which version each reference of a model leads to.
-- KEYS: what is served, lease of the steward.
-- ARGV: model, state, token of the lease; an empty token: whoever has it.
-- Returns 1; 0: someone else is the steward by now, and nothing was stored.
if ARGV[3] ~= '' and redis.call('GET', KEYS[2]) ~= ARGV[3] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
