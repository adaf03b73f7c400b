-- What became of a call with an idempotency key; of no account where another call has taken over.
-- KEYS: record of the key. ARGV: token of the call, what, then for 'answered': status, headers, body, '1' if packed.
-- What: 'answered' keeps the answer. 'let_go' lets the next call try, with the same ids. 'forget' frees the key.
local rec = KEYS[1]
if redis.call('HGET', rec, 'token') ~= ARGV[1] then return 0 end
if ARGV[2] == 'answered' then
  redis.call('HSET', rec, 'status', ARGV[3], 'headers', ARGV[4], 'body', ARGV[5], 'packed', ARGV[6])
  redis.call('HDEL', rec, 'token', 'until')
elseif ARGV[2] == 'let_go' then
  redis.call('HSET', rec, 'until', 0)
else
  redis.call('DEL', rec)
end
return 1
