-- Stores the record of a request, unless its id is known.
-- KEYS: record, open, all, then the payload keys, which were set with a short time to live and become lasting here.
-- ARGV: id, nonce, fingerprint, now, items, document, result ttl in ms, deadline to start (0: none), inline payload
-- ('': none), deadline to finish (0: none), '1' where something is to be done when it has ended (else ''), key of the
-- deadlines ('': it has none)
-- And where they are wanted: key that remembers the id beyond its record ('': none) and for how long in ms, id of the
-- request whose answer this one waits for.
-- Returns 1: accepted. 0: the same request was accepted before. -1: the id belongs to a different request. -2: it was
-- accepted before, has ended, and its record is gone.
local rec = KEYS[1]
local f = redis.call('HMGET', rec, 'fp', 'acc')
if f[1] then
  if f[1] ~= ARGV[3] then return -1 end
  -- Whoever calls has a say: the record is taken back only when every call that it answered has taken back its own.
  -- Past a few dozen calls nobody can any more ('*' is no nonce).
  redis.call('HSET', rec, 'acc', #f[2] < 500 and (f[2] .. ' ' .. ARGV[2]) or '*')
  return 0
end
if ARGV[13] and ARGV[13] ~= '' then
  if redis.call('EXISTS', ARGV[13]) == 1 then return -2 end
  redis.call('SET', ARGV[13], '', 'PX', ARGV[14])
end
redis.call('HSET', rec, 's', 'queued', 'nonce', ARGV[2], 'acc', ARGV[2], 'fp', ARGV[3], 'at', ARGV[4], 'n', ARGV[5],
  'doc', ARGV[6], 'ttl', ARGV[7], 'dl', ARGV[8])
if ARGV[10] ~= '0' then redis.call('HSET', rec, 'fdl', ARGV[10]) end
if ARGV[11] ~= '' then redis.call('HSET', rec, 'aft', ARGV[11]) end
if ARGV[15] then redis.call('HSET', rec, 'fol', ARGV[15]) end
if ARGV[9] ~= '' then redis.call('HSET', rec, 'in', ARGV[9]) end
for i = 4, #KEYS do redis.call('PERSIST', KEYS[i]) end
redis.call('ZADD', KEYS[2], ARGV[4], ARGV[1])
redis.call('ZADD', KEYS[3], ARGV[4], ARGV[1])
if ARGV[12] ~= '' then
  local start, finish = tonumber(ARGV[8]), tonumber(ARGV[10])
  redis.call('ZADD', ARGV[12], start ~= 0 and finish ~= 0 and math.min(start, finish) or start + finish, ARGV[1])
end
return 1
