// AES-GCM as of ESP (RFC 4106).
#include <array>

#include "crypto/algorithm.h"
#include "crypto/algorithms/expand.h"
#include "crypto/algorithms/hmac_texts.h"
#include "crypto/key_table.h"

namespace sluice::crypto {
namespace {

// draft-mcgrew-gcm-test-01, whose cases are packets of ESP; of the GCM specification those of 192 bits that have no
// additional data.
constexpr std::array answers = {
    KnownAnswer{"draft-mcgrew-gcm-test 1, ESN", "4c80cdefbb5d10da906ac73c3613a634", "2e443b68", "", no_nonce,
                "00004321000000004956ed7e3b244cfe", "87654321",
                "45000048699a000080114db7c0a80102c0a801010a9bf15638d301000001000000000000045f736970045f7564700373697009"
                "63796265726369747902646b000021000101020201",
                "fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34cfa2436f14a3f3cf65925bf1f4a13c5d15b21e"
                "1884f5ff6247aeabb786b93bce61bc17d768fd9732",
                "459018148f6cbe722fd04796562dfdb4"},
    KnownAnswer{"draft-mcgrew-gcm-test 2", "feffe9928665731c6d6a8f9467308308", "cafebabe", "", no_nonce,
                "0000a5f80000000afacedbaddecaf888", "",
                "4500003e698f000080114dccc0a80102c0a801010a980035002a2343b2d0010000010000000000000373697009637962657263"
                "69747902646b00000100010001",
                "deb22cd9b07c72c16e3a65beeb8df304a5a5897d33ae530f1ba76d5d114d2a5c3de81827c10e9a4f51330d0eec416642cfbb85"
                "a5b47e48a4ec3b9ba95d918bd1",
                "83b70d3aa8bc6ee4c309e9d85a41ad4a"},
    KnownAnswer{
        "draft-mcgrew-gcm-test, 256 bits", "abbccddef00112233445566778899aababbccddef00112233445566778899aab",
        "11223344", "", no_nonce, "4a2cbfe3000000020102030405060708", "",
        "4500003069a6400080062690c0a801029389155e0a9e008b2dc57ee0000000007002400020bf0000020405b40101040201020201",
        "ff425c9b724599df7a3bcd510194e00d6a78107f1b0b1cbf06efae9d65a5d763748a637985771d347f0545659f14e99def842d8e",
        "b335f4eecfdbf831824b4c4915956c96"},
    KnownAnswer{"draft-mcgrew-gcm-test, 192 bits", "feffe9928665731c6d6a8f9467308308feffe9928665731c", "cafebabe", "",
                no_nonce, "0000a5f80000000afacedbaddecaf888", "",
                "45000028a4ad4000400678800a01038f0a010612802306b8cb712602dd6bb03e501016d075680001",
                "a5b1f8066029aea40e598b8122de02420938b3ab33f828e687b8858b5bfbdbd0315b27452144cc77",
                "95457b9652037f5318027b5b4cd7a636"},
    KnownAnswer{"draft-mcgrew-gcm-test 2, tag of 96", "feffe9928665731c6d6a8f9467308308", "cafebabe", "", no_nonce,
                "0000a5f80000000afacedbaddecaf888", "",
                "4500003e698f000080114dccc0a80102c0a801010a980035002a2343b2d0010000010000000000000373697009637962657263"
                "69747902646b00000100010001",
                "deb22cd9b07c72c16e3a65beeb8df304a5a5897d33ae530f1ba76d5d114d2a5c3de81827c10e9a4f51330d0eec416642cfbb85"
                "a5b47e48a4ec3b9ba95d918bd1",
                "83b70d3aa8bc6ee4c309e9d8"},
    KnownAnswer{
        "draft-mcgrew-gcm-test, 256 bits, tag of 64",
        "abbccddef00112233445566778899aababbccddef00112233445566778899aab", "11223344", "", no_nonce,
        "4a2cbfe3000000020102030405060708", "",
        "4500003069a6400080062690c0a801029389155e0a9e008b2dc57ee0000000007002400020bf0000020405b40101040201020201",
        "ff425c9b724599df7a3bcd510194e00d6a78107f1b0b1cbf06efae9d65a5d763748a637985771d347f0545659f14e99def842d8e",
        "b335f4eecfdbf831"},
    KnownAnswer{"GCM test case 7", "000000000000000000000000000000000000000000000000", "00000000", "", no_nonce,
                "0000000000000000", "", "", "", "cd33b28ac773f74ba00ed1f312572435"},
    KnownAnswer{"GCM test case 8", "000000000000000000000000000000000000000000000000", "00000000", "", no_nonce,
                "0000000000000000", "", "00000000000000000000000000000000", "98e7247c07f0fe411c267e4384b0f600",
                "2ff58d80033927ab8ef4d4587514f0fb"}};

void expand(IMB_MGR* manager, const KeyMaterial& material, Slot& slot) {
  expand_gcm(manager, material.cipher_key, slot);
}

constexpr std::size_t key_lengths[] = {16, 24, 32};

}  // namespace

extern const Algorithm aes_gcm_esp;
constinit const Algorithm aes_gcm_esp = {.cipher = Cipher::aes_gcm_esp,
                                         .hash = Hash::none,
                                         .name = "aes_gcm_esp",
                                         .key_lengths = key_lengths,
                                         .salt_length = 4,
                                         .auth_key = {0, 0},
                                         .tag = {8, 16, 4},
                                         .needs_gcm_key = true,
                                         .answers = answers,
                                         .expand = expand};

}  // namespace sluice::crypto
