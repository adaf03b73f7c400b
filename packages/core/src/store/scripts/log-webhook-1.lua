-- Writes down an attempt of a delivery, or that it is given up without one, and what comes of it.
-- KEYS: delivery. ARGV: attempt (one line of JSON, or ''), state, attempts made, time of the next, why it was given up,
-- now, time to live in ms. Returns the state that it has now; '' where there is no such delivery.
local rec = KEYS[1]
local MOST_LOG_BYTES = 16384
local state = redis.call('HGET', rec, 's')
if not state then return '' end
if ARGV[1] ~= '' then
  local log = redis.call('HGET', rec, 'log')
  log = log and (log .. '\n' .. ARGV[1]) or ARGV[1]
  while #log > MOST_LOG_BYTES do
    local cut = string.find(log, '\n', 1, true)
    if not cut then break end
    log = string.sub(log, cut + 1)
  end
  redis.call('HSET', rec, 'log', log)
end
-- Another worker was faster: delivered is delivered.
if state ~= 'pending' then return state end
redis.call('HSET', rec, 's', ARGV[2], 'n', ARGV[3], 'next', ARGV[4], 'why', ARGV[5], 'exp', ARGV[6] + ARGV[7])
redis.call('PEXPIRE', rec, ARGV[7])
return ARGV[2]
