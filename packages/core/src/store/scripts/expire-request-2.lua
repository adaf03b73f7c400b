-- Ends a request one of whose deadlines has passed, by the clock of Redis: the one to start only while no worker has
-- begun to run it (a worker that has it looks by itself), the one to finish whatever it is doing.
-- KEYS: record, open. ARGV: id, channel, key tag, error where it is the deadline to start, and to finish, as JSON;
-- limits of dead letters, for items that were given up before.
-- Returns the status before and which deadline it was ('queued start', 'running finish', ...); 'missing'; '=status'
-- where it had ended; or '' where none has passed, and then the time at which it is to be looked at again is noted.
local rec, tag = KEYS[1], ARGV[3]
local f = redis.call('HMGET', rec, 'nonce', 'n', 'ttl', 'aft', 'dl', 'fdl', 's')
local before = f[7]
if not before or TERMINAL[before] then
  redis.call('ZREM', tag .. ':due', ARGV[1])
  return before and '=' .. before or 'missing'
end
local now = store_now()
local finish = passed(f[6], now)
if not finish and not (before == 'queued' and passed(f[5], now)) then
  -- A request that runs may be handed back and wait again: its worker, who takes it up next, sees to that.
  if before == 'queued' and f[5] ~= '0' then redis.call('ZADD', tag .. ':due', f[5], ARGV[1])
  elseif f[6] then redis.call('ZADD', tag .. ':due', f[6], ARGV[1])
  else redis.call('ZREM', tag .. ':due', ARGV[1]) end
  return ''
end
end_whole(rec, KEYS[2], tag, ARGV[1], f, 'expired', finish and ARGV[5] or ARGV[4], now, ARGV[2])
bury(rec, tag, ARGV[1], now, ARGV[6])
redis.call('PUBLISH', ARGV[2], ARGV[1])
return before .. (finish and ' finish' or ' start')
