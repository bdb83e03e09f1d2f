// What an SA's algorithms are to packets and to the table of keys.
#include "crypto/key_table.h"
#include "ipsec/sa.h"
#include "ipsec/sa_record.h"

namespace sluice::ipsec {}  // namespace sluice::ipsec
