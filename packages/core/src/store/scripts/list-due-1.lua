-- Ids of requests one of whose deadlines has passed, by the clock of Redis; the earliest first.
-- KEYS: requests with deadlines. ARGV: how many at most.
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', store_now(), 'LIMIT', 0, ARGV[1])
