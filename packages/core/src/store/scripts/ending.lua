-- Shared by the scripts that end a request. A terminal state never changes: callers look before they call these.

local TERMINAL = { succeeded = true, partial = true, failed = true, cancelled = true, expired = true }

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

-- Makes a request terminal: status, time, time to live; no longer open.
local function end_request(rec, open, id, status, now, ttl_ms)
  redis.call('HSET', rec, 's', status, 'fin', now, 'exp', now + ttl_ms)
  redis.call('PEXPIRE', rec, ttl_ms)
  redis.call('ZREM', open, id)
end
