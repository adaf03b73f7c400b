-- Says what is wanted of a bulk job and tells its coordinator, if it still stands as the caller has read it.
-- KEYS: job, open jobs, jobs that have ended.
-- ARGV: id, state as read, new state ('': as it is), wanted ('': as it is), priority ('': as it is), now,
--   place: 'open' (a coordinator is to have it), 'anew' (another than the one that has just ended it), 'closed' (none is), '' (as it is), channel.
-- Returns 1; 0: it was changed meanwhile; -1: it is gone.
local state = redis.call('HGET', KEYS[1], 'state')
if not state then return -1 end
if state ~= ARGV[2] then return 0 end
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], 'state', ARGV[3]) end
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'wanted', ARGV[4], 'wantedAt', ARGV[6]) end
if ARGV[5] ~= '' then redis.call('HSET', KEYS[1], 'priority', ARGV[5]) end
if ARGV[7] == 'open' or ARGV[7] == 'anew' then
  -- The life that has ended it may be about to say that nothing more is to be done.
  if ARGV[7] == 'anew' then redis.call('HINCRBY', KEYS[1], 'epoch', 1) end
  redis.call('ZADD', KEYS[2], ARGV[6], ARGV[1])
  redis.call('ZREM', KEYS[3], ARGV[1])
elseif ARGV[7] == 'closed' then
  -- Whoever has it must not go on.
  redis.call('HINCRBY', KEYS[1], 'epoch', 1)
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('ZADD', KEYS[3], ARGV[6], ARGV[1])
end
redis.call('PUBLISH', ARGV[8], ARGV[1])
return 1
