-- Gives a tenant a new signing secret; those before go on signing until their time is up.
-- KEYS: secret of the tenant. ARGV: new secret, now, time until which the one before signs (now: none before does).
local rec = KEYS[1]
local now = tonumber(ARGV[2])
local before = redis.call('HGET', rec, 'secret')
local kept = {}
if tonumber(ARGV[3]) > now then
  local old = cjson.decode(redis.call('HGET', rec, 'old') or '[]')
  for _, entry in ipairs(old) do
    if entry['until'] > now then kept[#kept + 1] = entry end
  end
  if before then kept[#kept + 1] = { secret = before, ['until'] = tonumber(ARGV[3]) } end
end
redis.call('HSET', rec, 'secret', ARGV[1], 'at', ARGV[2], 'old', #kept > 0 and cjson.encode(kept) or '[]')
return 1
