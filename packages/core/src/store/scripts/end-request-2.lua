-- Ends a request as a whole: cancelled, expired or failed. Outcomes of items that were written stay.
-- KEYS: record, open. ARGV: id, now, channel, key tag, status, error as JSON, guard, limits of dead letters ('': what
-- has no outcome yet is not kept as one).
-- Guard 'any' ends whatever has not ended; 'queued' only what no worker has begun to run.
-- Returns the status before (queued, running); 'missing'; or '=status' where nothing was changed.
local rec = KEYS[1]
local f = redis.call('HMGET', rec, 's', 'nonce', 'n', 'ttl', 'aft')
if not f[1] then return 'missing' end
if TERMINAL[f[1]] or (ARGV[7] == 'queued' and f[1] ~= 'queued') then return '=' .. f[1] end
local n, ttl = tonumber(f[3]), tonumber(f[4])
redis.call('HSET', rec, 'err', ARGV[6])
if ARGV[8] ~= '' then
  for item = 0, n - 1 do
    if redis.call('HEXISTS', rec, 'o:' .. item) == 0 then bury_item(rec, ARGV[4], ARGV[1], f[2], item, ARGV[6]) end
  end
end
drop_payloads(rec, ARGV[4], ARGV[1], f[2], n)
local kept = end_request(rec, KEYS[2], ARGV[4], ARGV[1], ARGV[5], tonumber(ARGV[2]), ttl, f[5], ARGV[3])
expire_large(rec, ARGV[4], ARGV[1], f[2], n, kept)
if ARGV[8] ~= '' then bury(rec, ARGV[4], ARGV[1], tonumber(ARGV[2]), ARGV[8]) end
redis.call('PUBLISH', ARGV[3], ARGV[1])
return f[1]
