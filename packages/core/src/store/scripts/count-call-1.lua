-- Takes one call off the rate of an API key (GCRA: the key holds the time at which all that was taken is paid back).
-- KEYS: the rate of the key. ARGV: microseconds that one call costs, most calls at once.
-- Redis' own clock, so that API processes need not agree about the time.
-- Returns: 1 allowed, 0 not; calls left; microseconds until all are there again; microseconds until the next is allowed.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local cost = tonumber(ARGV[1])
local room = cost * tonumber(ARGV[2])
local paid = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
local after = paid + cost
if after - room > now then
  return { 0, 0, string.format('%.0f', paid - now), string.format('%.0f', after - room - now) }
end
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000) + 1)
return { 1, math.floor((now - after + room) / cost), string.format('%.0f', after - now), '0' }
