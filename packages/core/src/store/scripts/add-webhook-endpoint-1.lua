-- Adds an endpoint, unless its tenant has as many as it may have: counted here, or calls at one moment would pass together.
-- KEYS: all endpoints. ARGV: id, endpoint (JSON), tenant, most of a tenant. Returns 0 where it has that many.
local count = 0
for _, text in ipairs(redis.call('HVALS', KEYS[1])) do
  if cjson.decode(text).tenant == ARGV[3] then count = count + 1 end
end
if count >= tonumber(ARGV[4]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
