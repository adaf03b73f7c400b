-- Takes back what one call stored, a dead letter included, when its author was told that it was not accepted.
-- KEYS: record, open, all. ARGV: id, nonce of the call, key tag.
-- Returns 1: removed. 0: there is no such record. -1: others were told that it is accepted, so it stays.
local rec = KEYS[1]
local f = redis.call('HMGET', rec, 'acc', 'nonce', 'n', 's', 'use')
if not f[4] then return 0 end
local left, mine = {}, false
for nonce in string.gmatch(f[1] or '', '%S+') do
  if nonce == ARGV[2] then mine = true else left[#left + 1] = nonce end
end
if not mine then return -1 end
if #left > 0 then
  redis.call('HSET', rec, 'acc', table.concat(left, ' '))
  return -1
end
if not TERMINAL[f[4]] then
  drop_payloads(rec, ARGV[3], ARGV[1], f[2], tonumber(f[3]))
  change_usage(ARGV[3] .. ':use', f[5], -1)
end
if redis.call('HGET', ARGV[3] .. ':d:' .. ARGV[1], 'nonce') == f[2] then drop_letter(ARGV[3], ARGV[1]) end
redis.call('DEL', rec)
redis.call('DEL', ARGV[3] .. ':once:' .. ARGV[1])
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
redis.call('ZREM', ARGV[3] .. ':due', ARGV[1])
return 1
