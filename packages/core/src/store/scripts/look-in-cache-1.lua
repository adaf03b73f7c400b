-- Where the answer of a request comes from: the cache, an identical request that is under way, or a run of its own.
-- KEYS: base of the cache of a model; every key here is built from it and shares its slot.
-- ARGV: digest of the request, lane, request id, priority, how long a leader is remembered in ms, id of a leader that is
-- known to have gone ('': none).
-- Returns: 'hit', then fields and values of the entry. 'follow', id of the leader: this request is among its followers.
-- 'lead': this request is the leader of those to come.
-- Who goes first follows nobody that goes later, so no priority is lost by following.
local base, digest, id = KEYS[1], ARGV[1], ARGV[3]
local entry = redis.call('HGETALL', base .. ':entry:' .. digest)
if #entry > 0 then
  redis.call('ZADD', base .. ':used', 'XX', CLOCK(), digest)
  table.insert(entry, 1, 'hit')
  return entry
end
local lead = base .. ':lead:' .. ARGV[2] .. ':' .. digest
local priority, leader = string.match(redis.call('GET', lead) or '', '^(%d) (.+)$')
if leader and leader ~= id and leader ~= ARGV[6] and tonumber(priority) <= tonumber(ARGV[4]) then
  local followers = base .. ':followers:' .. leader
  redis.call('SADD', followers, id)
  redis.call('PEXPIRE', followers, ARGV[5])
  redis.call('PEXPIRE', lead, ARGV[5])
  return { 'follow', leader }
end
redis.call('SET', lead, ARGV[4] .. ' ' .. id, 'PX', ARGV[5])
return { 'lead' }
