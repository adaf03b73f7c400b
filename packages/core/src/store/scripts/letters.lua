-- Shared by the scripts that keep, or take away, dead letters: what was given up, with its inputs. Behind ending.lua.
-- A letter is a hash: e:<item> the error of an item as JSON, in the input of a single small one, b the bytes of all
-- inputs, nonce that of its request, and from the end of that on its document and times. Inputs with keys of their own
-- get other names, so that nothing takes them for those of a request. A letter outlives the record, and the same id may
-- be used again meanwhile: the nonce tells whose letter it is.

-- A letter whose request has not ended yet goes by itself if that never happens.
local UNENDED_LETTER_MS = 7 * 24 * 3600 * 1000

local function letter_payload(tag, id, nonce, item)
  return tag .. ':dp:' .. id .. ':' .. nonce .. ':' .. item
end

local function drop_letter(tag, id)
  local letter = tag .. ':d:' .. id
  local f = redis.call('HMGET', letter, 'b', 'nonce')
  for _, field in ipairs(redis.call('HKEYS', letter)) do
    if string.sub(field, 1, 2) == 'e:' then redis.call('UNLINK', letter_payload(tag, id, f[2] or '', string.sub(field, 3))) end
  end
  redis.call('UNLINK', letter)
  local listed = redis.call('ZREM', tag .. ':dead', id)
  if listed == 1 then redis.call('DECRBY', tag .. ':dead:bytes', tonumber(f[1] or 0)) end
  return listed
end

-- Keeps the input and the error of one item. The letter of an earlier request of that id makes room.
local function bury_item(rec, tag, id, nonce, item, err)
  local letter, bytes = tag .. ':d:' .. id, 0
  local whose = redis.call('HGET', letter, 'nonce')
  if whose and whose ~= nonce then drop_letter(tag, id) end
  local inline = redis.call('HGET', rec, 'in')
  if inline then
    bytes = #inline
    redis.call('HSET', letter, 'in', inline)
    redis.call('HDEL', rec, 'in')
  else
    local from, to = tag .. ':p:' .. id .. ':' .. nonce .. ':' .. item, letter_payload(tag, id, nonce, item)
    if redis.call('EXISTS', from) == 1 then
      bytes = redis.call('STRLEN', from)
      redis.call('RENAME', from, to)
      redis.call('PEXPIRE', to, UNENDED_LETTER_MS)
    end
  end
  redis.call('HSET', letter, 'e:' .. item, err, 'nonce', nonce)
  redis.call('HINCRBY', letter, 'b', bytes)
  redis.call('PEXPIRE', letter, UNENDED_LETTER_MS)
end

-- Takes away what is too old, too many or too much, oldest first and a few at a time.
-- limits: "<kept in ms> <most letters> <most bytes>"
local function trim_letters(tag, now, limits, at_once)
  local kept, most, most_bytes = string.match(limits, '^(%d+) (%d+) (%d+)$')
  kept, most, most_bytes = tonumber(kept), tonumber(most), tonumber(most_bytes)
  local dropped = 0
  while dropped < at_once do
    local oldest = redis.call('ZRANGE', tag .. ':dead', 0, 0, 'WITHSCORES')
    if not oldest[1] then break end
    local over = tonumber(oldest[2]) + kept <= now or redis.call('ZCARD', tag .. ':dead') > most
      or tonumber(redis.call('GET', tag .. ':dead:bytes') or 0) > most_bytes
    if not over then break end
    drop_letter(tag, oldest[1])
    dropped = dropped + 1
  end
  return dropped
end

-- The request has ended: its letter, if it has one, is kept and listed from now on.
local function bury(rec, tag, id, now, limits)
  local letter = tag .. ':d:' .. id
  local held = redis.call('HMGET', letter, 'b', 'nonce')
  local bytes = held[1]
  if not bytes then return end
  local f = redis.call('HMGET', rec, 'doc', 'nonce', 'n', 'tok', 'at', 'route', 'skip')
  if held[2] and held[2] ~= f[2] then return end
  redis.call('HSET', letter, 'doc', f[1], 'nonce', f[2], 'n', f[3], 'tok', f[4] or 0, 'at', f[5], 'route', f[6] or '',
    'skip', f[7] or 0, 'died', now)
  redis.call('PERSIST', letter)
  for item = 0, tonumber(f[3]) - 1 do redis.call('PERSIST', letter_payload(tag, id, f[2], item)) end
  if redis.call('ZADD', tag .. ':dead', now, id) == 1 then redis.call('INCRBY', tag .. ':dead:bytes', bytes) end
  trim_letters(tag, now, limits, 4)
end
