// Fragments: of outer packets, which are put together before they are opened, and of inner ones, which are made before
// they are sealed.
#include <rte_mbuf.h>

#include <array>
#include <cstring>

#include "engine/batch_edit.h"
#include "function/ipsec/ipsec.h"
#include "function/routing.h"
#include "packet/fragment.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {
constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
}  // namespace

// A fragment of ESP or AH to this gateway. True: its packet is complete, and is the frame now.
[[gnu::noinline]] bool Ipsec::put_together(engine::Batch& batch, std::uint32_t i, const ipsec::OuterView& outer,
                                           std::uint32_t now) {
  if (routing_ == nullptr || !routing_->table().is_own(outer.family, outer.destination)) return false;
  Lane& lane = lane_of(batch);
  const auto taken = lane.fragments.put_together(batch, i, outer.is_own_fragment, now);
  if (taken == OuterFragments::Taken::no) return false;
  if (taken == OuterFragments::Taken::refused) {
    batch.drop(i, ipsec_fragment);
    return false;
  }
  lane.pieces.add(1);
  if (taken == OuterFragments::Taken::kept) return false;
  lane.reassembled.add(1);
  if (taken == OuterFragments::Taken::whole) return true;
  batch.drop(i, ipsec_no_room);
  return false;
}

// The row becomes the packet's first fragment, and the others are added behind. False: there is no capacity.
bool Ipsec::fragment(engine::Batch& batch, std::uint32_t i, std::uint32_t most, Chosen& whole) {
  Lane& lane = lane_of(batch);
  packet::Ipv4Fragments fragments(batch.data(i) + ethernet, whole.inner.length, most);
  const std::uint32_t more = fragments.count() - 1;
  if (more == 0 || lane.chosen.capacity() - lane.chosen.size() < more) return false;
  std::array<rte_mbuf*, packet::Ipv4Fragments::most> made;
  if (rte_pktmbuf_alloc_bulk(batch.mbuf[i]->pool, made.data(), more) != 0) return false;
  const std::uint16_t port = batch.row[i].port;
  std::uint32_t added = 0;
  for (; added < more; ++added) {
    rte_mbuf* const one = made[added];
    const std::uint32_t length = ethernet + fragments.length(added + 1);
    auto* const frame = reinterpret_cast<std::uint8_t*>(rte_pktmbuf_append(one, static_cast<std::uint16_t>(length)));
    if (frame == nullptr) break;
    std::memcpy(frame, batch.data(i), ethernet);
    fragments.write(added + 1, frame + ethernet);
    one->ol_flags |= looked_at_;
    if (!engine::append_row(batch, one, port)) break;
    Chosen part = whole;
    part.inner.length = static_cast<std::uint16_t>(fragments.length(added + 1));
    lane.chosen.push_back(part);
  }
  if (added != more) {
    // What is there already leaves, and its receiver waits for the rest in vain, as for any that is lost.
    rte_pktmbuf_free_bulk(made.data() + added, more - added);
    return false;
  }
  fragments.write(0, batch.data(i) + ethernet);
  whole.inner.length = static_cast<std::uint16_t>(fragments.length(0));
  lane.fragmented.add(1);
  return true;
}

}  // namespace sluice::function
