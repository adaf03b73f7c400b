/** Faults of the connection between one process and Redis, by the proxy between them. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { TcpProxy } from '../fleet/tcp-proxy.js';
import type { FaultName } from '../plan/fault-kinds.js';
import type { Fault } from '../plan/plan.js';
import { type Strike, struckSlot } from './site.js';

function byProxy(hurt: (proxy: TcpProxy, fault: Fault) => void): Strike {
  return (fault, site) => {
    const slot = struckSlot(fault, site);
    return site.calm.hurting([slot.name], async () => {
      hurt(slot.proxy, fault);
      await sleep(fault.locks * site.lockMs);
      slot.proxy.mend();
    });
  };
}

export const NETWORK_FAULTS: Partial<Record<FaultName, Strike>> = {
  latency: byProxy((proxy, { variant }) => proxy.delay(Number(variant))),
  cut: byProxy((proxy) => proxy.cut()),
  partition: byProxy((proxy) => proxy.silence()),
};
