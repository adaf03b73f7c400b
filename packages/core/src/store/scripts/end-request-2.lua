-- Ends a request as a whole: cancelled, expired or failed. Outcomes of items that were written stay.
-- KEYS: record, open. ARGV: id, error where its deadline to finish has passed, channel, key tag, status, error as JSON,
-- guard, '1' where what has no outcome yet is kept as a dead letter (else ''), limits of dead letters, nonce ('': that
-- of whichever request has the id now).
-- Guard 'any' ends whatever has not ended; 'queued' only what no worker has begun to run.
-- Returns the status before (queued, running); 'missing'; '=status' where nothing was changed; or 'late' where the
-- deadline to finish had passed, so that it ended as expired and not as was asked.
local rec = KEYS[1]
local f = redis.call('HMGET', rec, 'nonce', 'n', 'ttl', 'aft', 'dl', 'fdl', 's')
local before, n = f[7], tonumber(f[2])
if not before or (ARGV[10] ~= '' and ARGV[10] ~= f[1]) then return 'missing' end
if TERMINAL[before] or (ARGV[7] == 'queued' and before ~= 'queued') then return '=' .. before end
local now = store_now()
local late = passed(f[6], now)
local status, error = ARGV[5], ARGV[6]
if late then status, error = 'expired', ARGV[2] end
if ARGV[8] == '1' and not late then
  for item = 0, n - 1 do
    if redis.call('HEXISTS', rec, 'o:' .. item) == 0 then bury_item(rec, ARGV[4], ARGV[1], f[1], item, error) end
  end
end
end_whole(rec, KEYS[2], ARGV[4], ARGV[1], f, status, error, now, ARGV[3])
-- Items that were given up before are kept however it ends.
bury(rec, ARGV[4], ARGV[1], now, ARGV[9])
redis.call('PUBLISH', ARGV[3], ARGV[1])
return late and ARGV[5] ~= 'expired' and 'late' or before
