-- Keeps an answer, and makes room for it: what is over first, then what was used longest ago.
-- KEYS: base of the cache of a model. ARGV: digest, time to live in ms, most bytes of the cache, bytes of this answer,
-- most entries dropped in one call, then fields and values of the entry.
-- Returns: 1 if it is kept, else 0 (no room could be made within the bound; later calls go on); bytes of the cache now;
-- how many entries were dropped for want of room.
local base, digest, most, bytes = KEYS[1], ARGV[1], tonumber(ARGV[3]), tonumber(ARGV[4])
local used, over, sizes = base .. ':used', base .. ':over', base .. ':sizes'
local now, bound = CLOCK(), tonumber(ARGV[5])

local function drop(entry)
  local size = redis.call('HGET', sizes, entry)
  redis.call('UNLINK', base .. ':entry:' .. entry)
  redis.call('ZREM', used, entry)
  redis.call('ZREM', over, entry)
  redis.call('HDEL', sizes, entry)
  if size then redis.call('HINCRBY', sizes, 'total', -size) end
end

for _, entry in ipairs(redis.call('ZRANGEBYSCORE', over, '-inf', now, 'LIMIT', 0, bound)) do drop(entry) end
drop(digest)
local total = tonumber(redis.call('HGET', sizes, 'total') or 0)
local evicted = 0
while total + bytes > most and evicted < bound do
  local oldest = redis.call('ZRANGE', used, 0, 0)[1]
  if not oldest then break end
  drop(oldest)
  evicted = evicted + 1
  total = tonumber(redis.call('HGET', sizes, 'total') or 0)
end
if total + bytes > most then return { 0, total, evicted } end
local entry = base .. ':entry:' .. digest
redis.call('HSET', entry, unpack(ARGV, 6))
redis.call('PEXPIRE', entry, ARGV[2])
redis.call('ZADD', used, now, digest)
redis.call('ZADD', over, now + ARGV[2], digest)
redis.call('HSET', sizes, digest, bytes)
redis.call('HINCRBY', sizes, 'total', bytes)
return { 1, total + bytes, evicted }
