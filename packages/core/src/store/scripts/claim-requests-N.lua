-- Asks for each request whether this attempt may run it, and marks it as running.
-- KEYS: records. ARGV: now, worker id, then for each record: token, nonce.
-- Returns for each record: verdict, inline payload ('' where there is none).
-- Verdicts: run, already_terminal, fenced (a later attempt has it), record_missing, expired.
local out = {}
local now = tonumber(ARGV[1])
for i, rec in ipairs(KEYS) do
  local token, nonce = tonumber(ARGV[1 + i * 2]), ARGV[2 + i * 2]
  local f = redis.call('HMGET', rec, 's', 'tok', 'nonce', 'dl', 'in')
  local status, verdict, inline = f[1], nil, ''
  if not status or f[3] ~= nonce then verdict = 'record_missing'
  elseif status ~= 'queued' and status ~= 'running' then verdict = 'already_terminal'
  elseif f[2] and tonumber(f[2]) > token then verdict = 'fenced'
  elseif status == 'queued' and f[4] ~= '0' and tonumber(f[4]) < now then verdict = 'expired'
  else
    verdict = 'run'
    inline = f[5] or ''
  end
  if verdict == 'run' then
    if status == 'queued' then redis.call('HSET', rec, 's', 'running', 'tok', token, 'start', ARGV[1], 'w', ARGV[2])
    elseif tonumber(f[2]) ~= token then redis.call('HSET', rec, 'tok', token, 'w', ARGV[2]) end
  elseif verdict == 'expired' then
    redis.call('HSET', rec, 'tok', token)
  end
  out[#out + 1] = verdict
  out[#out + 1] = inline
end
return out
