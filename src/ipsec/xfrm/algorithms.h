// The algorithms of ESP and AH by the names that Linux's crypto API has for them, as XFRM's attributes carry them.
//
// Sources: RFC 3602 (AES-CBC), 3686 (AES-CTR), 4106 (AES-GCM), 7634 (ChaCha20-Poly1305), 2410 (NULL), 2404, 4868
// (HMAC); Linux net/xfrm/xfrm_algo.c (names, lengths of ICVs that are not said). Thread-safety: no state.
#pragma once

#include "ipsec/security_association.h"
#include "ipsec/xfrm/message.h"

namespace sluice::ipsec::xfrm {

// From XFRMA_ALG_CRYPT, _AUTH, _AUTH_TRUNC and _AEAD. Of _AUTH and _AUTH_TRUNC the second counts.
// ENOSYS: an algorithm that is not known. EINVAL: a key of a wrong length, an ICV that is not of the algorithm,
// algorithms that are too many or too few for the protocol.
Result<Transform> read_transform(const Attributes& attributes, Protocol protocol);

// The same attributes, with keys, under the names that Linux answers with. XFRMA_ALG_AUTH is there too, as of Linux.
void write_transform(Message& message, const Transform& transform, Protocol protocol);

}  // namespace sluice::ipsec::xfrm
