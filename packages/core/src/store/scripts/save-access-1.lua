-- Stores an API key or a tenant, if nobody has changed it since it was read, and tells all processes in the same step.
-- KEYS: the hash that it lies in.
-- ARGV: field, text that was read ('': there was none), new text, channel.
-- Returns 1; 0: it was changed meanwhile.
local now = redis.call('HGET', KEYS[1], ARGV[1]) or ''
if now ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('PUBLISH', ARGV[4], ARGV[1])
return 1
