-- Takes requests that have ended and about which something is still to be done. They come again after a while, unless
-- they are finished by then: whoever took them may have died.
-- KEYS: ended requests by the time at which they may be taken. ARGV: now, time at which they come again, how many.
-- Returns their ids.
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[3])
for _, id in ipairs(ids) do redis.call('ZADD', KEYS[1], 'XX', ARGV[2], id) end
return ids
