-- Puts a bulk job in, unless one of that id is there.
-- KEYS: job, jobs of all, jobs of its tenant, open jobs.
-- ARGV: id, spec, state, priority, now.
-- Returns 1; 0: it was there.
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'spec', ARGV[2], 'state', ARGV[3], 'priority', ARGV[4], 'wanted', 'run', 'wantedAt', ARGV[5], 'epoch', 0, 'at', ARGV[5])
redis.call('ZADD', KEYS[2], ARGV[5], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[5], ARGV[1])
redis.call('ZADD', KEYS[4], ARGV[5], ARGV[1])
return 1
