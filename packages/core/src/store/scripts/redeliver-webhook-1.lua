-- Begins a new round of attempts of a delivery, whatever came of the rounds before.
-- KEYS: delivery. ARGV: now, time to live in ms. Returns 0 where there is no such delivery.
local rec = KEYS[1]
if redis.call('EXISTS', rec) == 0 then return 0 end
redis.call('HSET', rec, 's', 'pending', 'n', 0, 'begun', ARGV[1], 'next', ARGV[1], 'why', '', 'exp', ARGV[1] + ARGV[2])
redis.call('PEXPIRE', rec, ARGV[2])
return 1
