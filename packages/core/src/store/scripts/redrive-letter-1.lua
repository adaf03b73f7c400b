-- A dead letter and its second life. The id may have another letter by now: the nonce tells whose it is.
-- KEYS: list of letters. ARGV: key tag, id, nonce, request that runs it again ('': that is accepted, so the letter goes).
-- Returns 1: done. 0: that letter is gone.
local letter = ARGV[1] .. ':d:' .. ARGV[2]
if redis.call('HGET', letter, 'nonce') ~= ARGV[3] then return 0 end
if ARGV[4] == '' then return drop_letter(ARGV[1], ARGV[2]) end
redis.call('HSET', letter, 'again', ARGV[4])
return 1
