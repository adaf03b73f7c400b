-- Adds to a report of comparisons: counters, maxima and the worst examples.
-- KEYS: report (hash), worst examples (sorted set).
-- ARGV: time to live in seconds, examples kept, then any number of: 'add', field, by | 'max', field, value |
-- 'worst', member, score.
for i = 3, #ARGV, 3 do
  local what, name, value = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if what == 'add' then
    redis.call('HINCRBY', KEYS[1], name, value)
  elseif what == 'max' then
    local now = redis.call('HGET', KEYS[1], name)
    if not now or tonumber(value) > tonumber(now) then redis.call('HSET', KEYS[1], name, value) end
  else
    redis.call('ZADD', KEYS[2], 'GT', value, name)
  end
end
redis.call('ZREMRANGEBYRANK', KEYS[2], 0, -1 - tonumber(ARGV[2]))
redis.call('EXPIRE', KEYS[1], ARGV[1])
redis.call('EXPIRE', KEYS[2], ARGV[1])
return 1
