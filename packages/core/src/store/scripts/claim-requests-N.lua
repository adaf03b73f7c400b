-- Asks for each request whether this attempt may run it, and marks it as running.
-- KEYS: records. ARGV: worker id, '1' where its items have begun to run before, in this attempt (else ''), then for
-- each record: token, nonce.
-- Returns for each record: verdict, inline payload ('' where there is none).
-- Verdicts: already_terminal, fenced (a later attempt has it), record_missing, 'expired start' (the deadline to start
-- has passed and this attempt has not begun), 'expired finish', run; the last with the milliseconds that are left until
-- the deadlines to start and to finish where there is one ('run 1500 -': to start). The time is that of Redis.
local out = {}
local now = store_now()
local begun = ARGV[2] == '1'
local function left(at)
  if not at or at == '0' then return '-' end
  return string.format('%d', tonumber(at) - now)
end
for i, rec in ipairs(KEYS) do
  local token, nonce = tonumber(ARGV[1 + i * 2]), ARGV[2 + i * 2]
  local f = redis.call('HMGET', rec, 's', 'tok', 'nonce', 'dl', 'in', 'fdl', 'n')
  local status, verdict, inline = f[1], nil, ''
  local same = status == 'running' and tonumber(f[2]) == token
  if not status or f[3] ~= nonce then verdict = 'record_missing'
  elseif status ~= 'queued' and status ~= 'running' then verdict = 'already_terminal'
  elseif f[2] and tonumber(f[2]) > token then verdict = 'fenced'
  elseif passed(f[6], now) then verdict = 'expired finish'
  elseif not same and passed(f[4], now) then verdict = 'expired start'
  else
    verdict = 'run'
    inline = f[5] or ''
  end
  if verdict == 'run' then
    if status == 'queued' then redis.call('HSET', rec, 's', 'running', 'tok', token, 'start', now, 'w', ARGV[1])
    elseif not same then redis.call('HSET', rec, 'tok', token, 'w', ARGV[1]) end
    -- Of several items each batch claims the request; of one, a second claim is a second run.
    if status == 'running' and f[7] == '1' then redis.call('HINCRBY', rec, 'again', 1) end
    local start = begun and '-' or left(f[4])
    local finish = left(f[6])
    if start ~= '-' or finish ~= '-' then verdict = 'run ' .. start .. ' ' .. finish end
  elseif string.sub(verdict, 1, 7) == 'expired' then
    redis.call('HSET', rec, 'tok', token)
    -- Its outcome comes from this worker, whoever had begun to run it.
    if status == 'running' then redis.call('HSET', rec, 'w', ARGV[1]) end
  end
  out[#out + 1] = verdict
  out[#out + 1] = inline
end
return out
