-- Shared by the scripts that end a request. A terminal state never changes: callers look before they call these.

local TERMINAL = { succeeded = true, partial = true, failed = true, cancelled = true, expired = true }

-- Unix milliseconds by the clock of Redis: the one by which every deadline passes, whatever the clocks of hosts say.
local function store_now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end

-- Whether a point in time (a field of the record; 0 or none: never) has passed.
local function passed(at, now)
  return at and at ~= '0' and tonumber(at) <= now
end

-- Deletes the stored input of one item.
local function drop_payload(tag, id, nonce, item)
  redis.call('UNLINK', tag .. ':p:' .. id .. ':' .. nonce .. ':' .. item)
end

-- Deletes whatever input is still stored.
local function drop_payloads(rec, tag, id, nonce, n)
  if redis.call('HDEL', rec, 'in') == 0 then
    for item = 0, n - 1 do drop_payload(tag, id, nonce, item) end
  end
end

-- Large outcomes stand under keys of their own; they end together with the record.
local function expire_large(rec, tag, id, nonce, n, ttl_ms)
  for item = 0, n - 1 do
    local field = 'o:' .. item
    if redis.call('HSTRLEN', rec, field) < 20 then
      local mark = redis.call('HGET', rec, field)
      if mark and string.sub(mark, 1, 4) == '\0\0\0\0' then
        redis.call('PEXPIRE', tag .. ':o:' .. id .. ':' .. nonce .. ':' .. item .. ':' .. string.sub(mark, 5), ttl_ms)
      end
    end
  end
end

-- A request whose end still has to be told to others is kept at least this long, whatever its retention.
local AFTERMATH_MS = 7 * 24 * 3600 * 1000

-- Makes a request terminal: status, time, time to live; no longer open. What is to be done after its end (a webhook,
-- say) is noted in the same step, so that no crash can come between. Returns how long it is kept, in milliseconds.
-- timed: it has a deadline, so it stands among those that the sweeper looks at when that passes.
local function end_request(rec, open, tag, id, status, now, ttl_ms, after, channel, timed)
  redis.call('HSET', rec, 's', status, 'fin', now, 'exp', now + ttl_ms)
  redis.call('ZREM', open, id)
  if timed then redis.call('ZREM', tag .. ':due', id) end
  if after then
    ttl_ms = math.max(ttl_ms, AFTERMATH_MS)
    redis.call('ZADD', tag .. ':after', now, id)
    redis.call('PUBLISH', channel .. ':after', '')
  end
  redis.call('PEXPIRE', rec, ttl_ms)
  return ttl_ms
end

-- Ends a request as a whole: outcomes of items that were written stay, what is left of its inputs goes.
-- f: its fields nonce, n, ttl, aft, dl, fdl, in this order.
local function end_whole(rec, open, tag, id, f, status, error, now, channel)
  local nonce, n = f[1], tonumber(f[2])
  redis.call('HSET', rec, 'err', error)
  drop_payloads(rec, tag, id, nonce, n)
  local kept = end_request(rec, open, tag, id, status, now, tonumber(f[3]), f[4], channel, f[5] ~= '0' or f[6])
  expire_large(rec, tag, id, nonce, n, kept)
end
