-- Milliseconds by the clock of Redis, so that hosts whose clocks differ agree about ages.
local function CLOCK()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

