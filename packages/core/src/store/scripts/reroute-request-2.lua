-- Gives a request another route before it is run.
-- KEYS: record, usage. ARGV: nonce, route as JSON, token that the old job has reached, 1 if its worker is known to have
-- gone, what the route is as the end of a partition's name: class/lane.
-- Returns 1: done. 0: it was run, ended, moved by someone else, or is not there.
-- The old job may be taken up once more before it is off its queue, with the next token: the record goes one beyond
-- that, so such an attempt is fenced. Tokens left out are counted, since people are told of attempts.
local rec = KEYS[1]
local f = redis.call('HMGET', rec, 's', 'tok', 'nonce', 'use')
local held, token = tonumber(ARGV[3]), tonumber(f[2] or 0)
if not f[1] or f[3] ~= ARGV[1] or token > held then return 0 end
if f[1] ~= 'queued' and not (f[1] == 'running' and ARGV[4] == '1') then return 0 end
redis.call('HSET', rec, 'route', ARGV[2], 'tok', held + 2)
-- What the next attempt is told is one more than the old job's count, whether or not each of those reached the record.
redis.call('HINCRBY', rec, 'skip', held + 2 - token)
local before, model, tenant = string.match(f[4] or '', '^(%d+ %d+) ([^/]+)/%S+( ?%S*)$')
if before then
  local use = before .. ' ' .. model .. '/' .. ARGV[5] .. tenant
  change_usage(KEYS[2], f[4], -1)
  change_usage(KEYS[2], use, 1)
  redis.call('HSET', rec, 'use', use)
end
return 1
