-- Writes where a bulk job stands, if this life of its coordinator is still the newest.
-- KEYS: job, open jobs, jobs that have ended. ARGV: id, epoch, state, when all is done for it ('': not yet).
-- Returns 1; 0: a newer life has it, or it is gone.
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[3])
if ARGV[4] ~= '' then
  redis.call('ZREM', KEYS[2], ARGV[1])
  redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1])
end
return 1
