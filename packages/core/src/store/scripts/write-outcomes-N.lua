-- Stores outcomes of items, each behind the fence: only the attempt that holds the request, only while it has not
-- ended and its deadline to finish has not passed, only once for each item. Ends the requests that are complete, and
-- those that are too late, and tells who waits for them.
-- KEYS: open, then for each item its record.
-- ARGV: error of a request that is too late, channel, key tag, limits of dead letters, then for each item: id, item,
-- token, nonce, kind ('ok', 'error', 'expired', or 'dead:' and the error as JSON, of what is given up: its input is
-- kept), frame or mark.
-- Returns for each item: verdict (written, too_late, already_terminal, fenced, record_missing), and the status of the
-- request where this outcome ended it, else ''.
local out, ended = {}, {}
local now, tag, limits = store_now(), ARGV[3], ARGV[4]
for i = 2, #KEYS do
  local rec = KEYS[i]
  local base = 4 + (i - 2) * 6
  local id, item, token, nonce, kind = ARGV[base + 1], ARGV[base + 2], tonumber(ARGV[base + 3]), ARGV[base + 4], ARGV[base + 5]
  local dead = string.sub(kind, 1, 5) == 'dead:' and string.sub(kind, 6)
  if dead then kind = 'error' end
  local f = redis.call('HMGET', rec, 'nonce', 'n', 'ttl', 'aft', 'dl', 'fdl', 's', 'tok')
  local status, held, n = f[7], f[8], tonumber(f[2])
  local verdict, became = 'written', ''
  if not status or f[1] ~= nonce then verdict = 'record_missing'
  elseif held and tonumber(held) > token then verdict = 'fenced'
  elseif TERMINAL[status] then
    -- A command that is sent again after a lost connection finds its own work done.
    if redis.call('HEXISTS', rec, 'o:' .. item) == 0 then verdict = 'already_terminal' end
  elseif passed(f[6], now) then
    verdict, became = 'too_late', 'expired'
    if not held or tonumber(held) < token then redis.call('HSET', rec, 'tok', token) end
    end_whole(rec, KEYS[1], tag, id, f, became, ARGV[1], now, ARGV[2])
    bury(rec, tag, id, now, limits)
    ended[#ended + 1] = id
  elseif redis.call('HSETNX', rec, 'o:' .. item, ARGV[base + 6]) == 1 then
    local final
    -- A worker that ends an item before any run (deadline passed) has not claimed it.
    if not held or tonumber(held) < token then redis.call('HSET', rec, 'tok', token) end
    if n == 1 then
      final = kind == 'ok' and 'succeeded' or (kind == 'expired' and 'expired' or 'failed')
    else
      local done = redis.call('HINCRBY', rec, 'done', 1)
      redis.call('HINCRBY', rec, 'n:' .. kind, 1)
      if done == n then
        local c = redis.call('HMGET', rec, 'n:ok', 'n:expired')
        local ok, expired = tonumber(c[1] or 0), tonumber(c[2] or 0)
        final = ok == n and 'succeeded' or (ok > 0 and 'partial' or (expired == n and 'expired' or 'failed'))
      end
    end
    if dead then bury_item(rec, tag, id, nonce, item, dead)
    elseif redis.call('HDEL', rec, 'in') == 0 then drop_payload(tag, id, nonce, item) end
    if final then
      local kept = end_request(rec, KEYS[1], tag, id, final, now, tonumber(f[3]), f[4], ARGV[2], f[5] ~= '0' or f[6])
      if redis.call('HSTRLEN', rec, 'o:0') < 20 or n > 1 then expire_large(rec, tag, id, nonce, n, kept) end
      if final == 'failed' or final == 'partial' then bury(rec, tag, id, now, limits) end
      became = final
      ended[#ended + 1] = id
    end
  end
  out[#out + 1] = verdict
  out[#out + 1] = became
end
if #ended > 0 then redis.call('PUBLISH', ARGV[2], table.concat(ended, ' ')) end
return out
