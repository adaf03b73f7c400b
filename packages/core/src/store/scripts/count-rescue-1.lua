-- Counts how often the lost job of a request was put back. By the clock of Redis, since those of hosts differ.
-- KEYS: record. ARGV: time within which several losses count as one, in milliseconds.
-- Returns the count; 0: there is no record, and counting would make one that never ends.
local f = redis.call('HMGET', KEYS[1], 's', 'rescued', 'resc:at', 'resc:done', 'done')
if not f[1] then return 0 end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local count, done = tonumber(f[2] or 0), f[5] or '0'
-- Items have got their outcome since the last loss: it makes progress.
if f[4] and f[4] ~= done then count = 0 end
if count > 0 and now - tonumber(f[3] or 0) < tonumber(ARGV[1]) then return count end
redis.call('HSET', KEYS[1], 'rescued', count + 1, 'resc:at', now, 'resc:done', done)
return count + 1
