-- Compares what is counted with what has not ended, and counts anew where the two differ.
-- KEYS: usage, open. ARGV: key tag, most requests to count at once.
-- Returns 0: they agree. -1: they differ, but more has not ended than may be counted at once. Else 1: counted anew.
local counted = 0
local texts = redis.call('HGETALL', KEYS[1])
for i = 1, #texts, 2 do
  if string.sub(texts[i], 1, 2) == 'p:' then counted = counted + tonumber(string.match(texts[i + 1], '^%d+') or 0) end
end
local open = redis.call('ZCARD', KEYS[2])
if counted == open then return 0 end
if open > tonumber(ARGV[2]) then return -1 end
redis.call('DEL', KEYS[1])
for _, id in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  local f = redis.call('HMGET', ARGV[1] .. ':q:' .. id, 's', 'use')
  if f[1] and f[2] and not TERMINAL[f[1]] then change_usage(KEYS[1], f[2], 1) end
end
return 1
