// Variables that are given as NAME=VALUE: mistakes in them.
#include "match/rules/given_variables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::match {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> fix(const std::vector<std::string>& texts, Variables& variables) {
  return fix_variables(texts, variables);
}

TEST(GivenVariables, AreNamesWithValuesEachOnce) {
  Variables variables = Variables::defaults();
  EXPECT_THAT(fix({"HOME_NET=10.0.0.1", "OTHER==", "HTTP_PORTS=8080"}, variables), IsEmpty());
  EXPECT_EQ(*variables.find("HOME_NET"), "10.0.0.1");
  EXPECT_THAT(fix({"HOME_NET", "HOME NET=any", "A=10.0.0.1", "A=192.0.2.1", "B= "}, variables),
              ElementsAre(HasSubstr("'HOME_NET' is not NAME=VALUE"), HasSubstr("'HOME NET' is no name"),
                          "'A=192.0.2.1': A is given twice", HasSubstr("B is given no value")));
  EXPECT_EQ(*variables.find("A"), "10.0.0.1");
}

TEST(GivenVariables, AreAddressesOrPortsWhetherRulesUseThemOrNot) {
  Variables variables = Variables::defaults();
  ASSERT_THAT(fix({"HOME_NET=$OFFICE", "MY_PORTS=!53", "ANY=any"}, variables), IsEmpty());
  EXPECT_THAT(unusable_variables(variables), ElementsAre(HasSubstr("$HOME_NET: the variable 'OFFICE' is not set")));
  ASSERT_TRUE(variables.set("OFFICE", "192.0.2.0/24"));
  EXPECT_THAT(unusable_variables(variables), IsEmpty());
  ASSERT_THAT(fix({"HOME_NET=1.2.3", "MY_PORTS=80000"}, variables), IsEmpty());
  EXPECT_THAT(unusable_variables(variables), ElementsAre(HasSubstr("$HOME_NET: '1.2.3'"), HasSubstr("$MY_PORTS: ")));
}

}  // namespace
}  // namespace sluice::match
