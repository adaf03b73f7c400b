-- Freezes what is to be delivered, once: a second call for the same event and endpoint changes nothing.
-- KEYS: delivery. ARGV: facts (JSON), body, secret of its own or '', now, time to live in ms.
-- Returns the state that it has.
local rec = KEYS[1]
local state = redis.call('HGET', rec, 's')
if state then return state end
redis.call('HSET', rec, 'facts', ARGV[1], 'body', ARGV[2], 's', 'pending', 'n', 0, 'begun', ARGV[4], 'next', ARGV[4])
if ARGV[3] ~= '' then redis.call('HSET', rec, 'secret', ARGV[3]) end
redis.call('HSET', rec, 'exp', ARGV[4] + ARGV[5])
redis.call('PEXPIRE', rec, ARGV[5])
return 'pending'
