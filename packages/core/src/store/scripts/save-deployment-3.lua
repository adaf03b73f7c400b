-- Stores the desired state of a model, if nobody has changed it since it was read, and its history.
-- KEYS: desired states, counter of revisions, history of the model.
-- ARGV: model, revision that was read (0: there was none), state without its revision, event without its revision,
-- entries of history kept.
-- Both texts are stored as "<revision> <JSON>". Returns the new revision; 0: it was changed meanwhile.
local now = redis.call('HGET', KEYS[1], ARGV[1])
local had = now and string.match(now, '^(%d+) ') or '0'
if had ~= ARGV[2] then return 0 end
local revision = redis.call('INCR', KEYS[2])
redis.call('HSET', KEYS[1], ARGV[1], revision .. ' ' .. ARGV[3])
redis.call('LPUSH', KEYS[3], revision .. ' ' .. ARGV[4])
redis.call('LTRIM', KEYS[3], 0, tonumber(ARGV[5]) - 1)
return revision
