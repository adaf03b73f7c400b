-- Begins a life of a coordinator: from now on lives before it can write nothing.
-- KEYS: job. ARGV: epoch that its work folder has seen (a Redis that was set back may know less).
-- Returns the new epoch; 0: there is no such job.
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
local epoch = math.max(tonumber(redis.call('HGET', KEYS[1], 'epoch') or '0'), tonumber(ARGV[1])) + 1
redis.call('HSET', KEYS[1], 'epoch', epoch)
return epoch
