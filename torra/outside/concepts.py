"""By which XBRL concept a company tells a figure: ordered chains, and the rule that chooses.

A figure has an ordered chain of concepts. A filing speaks of it by one of them, its lead, and what
it tells by the others is left out, so that no fallback stands between values of a better concept.
The lead is chosen among those that are told for the newest end of the filing: the first of the
chain, and where the chain begins with totals of the same thing the one with the largest value of
the same period, for a part is never more than the whole. P&G's 10-K of 2014 tells `Revenues` 29.400
bn beside `SalesRevenueNet` 83.062 bn, General Mills' of 2024 tells 2.038 beside 19.857 (lumibot
#1141), and Cato's has its total in `Revenues` (edgartools #1294): no order is right for all.

Short-term debt has a total that few tell, and two kinds of parts, what of long-term debt falls due
and what was borrowed for short: where there is no total they are added, for each day that tells the
same kinds as the newest one does.

A quarterly report or an amendment is not led by a concept that the newest annual report of the time
told and left out: alone it would be a part that looks like the whole. A concept that is new to both
may lead, for names change with the rules of accounting. Filings are looked at in the order in which
they were known, so what came later never chooses what counted before.

US filers use the taxonomy us-gaap, and dei for the shares outstanding of the cover; some foreign
ones ifrs-full. Pure values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

US, IFRS, DEI = "us-gaap", "ifrs-full", "dei"


class Concept(NamedTuple):
    """A concept of a taxonomy."""

    taxonomy: str
    name: str


@dataclass(frozen=True, slots=True)
class ConceptChain:
    """The concepts of a figure, the best first, of US filers and of those by IFRS.

    `totals` says how many of the first ones are totals of the same thing: of several that a filing
    tells, the largest is the whole. `parts` are kinds of concepts that add up to the whole, where a
    filing tells no total; of each kind the first that it tells.
    """

    us: tuple[str, ...]
    ifrs: tuple[str, ...] = ()
    totals: int = 1
    dei: str = ""
    parts: tuple[tuple[str, ...], ...] = ()

    def concepts(self, *, foreign: bool) -> tuple[Concept, ...]:
        """Return what to ask for; of a foreign filer IFRS as well."""
        return (
            *((Concept(DEI, self.dei),) if self.dei else ()),
            *(Concept(US, name) for name in self.us),
            *(Concept(IFRS, name) for name in self.ifrs if foreign),
        )

    def rank(self, concept: Concept) -> int:
        """Return the place of a concept in its chain; totals share the first."""
        if concept.taxonomy == DEI:
            return -1
        place = (self.us if concept.taxonomy == US else self.ifrs).index(concept.name)
        return 0 if place < self.totals else place


_PRETAX: Final = "IncomeLossFromContinuingOperationsBeforeIncomeTaxes"

CHAINS: Final[Mapping[str, ConceptChain]] = {
    "revenue": ConceptChain(
        (
            "Revenues",
            "RevenueFromContractWithCustomerExcludingAssessedTax",
            "SalesRevenueNet",
            "RevenueFromContractWithCustomerIncludingAssessedTax",
        ),
        ("Revenue", "RevenueFromContractsWithCustomers"),
        totals=3,
    ),
    "cost_of_revenue": ConceptChain(
        ("CostOfRevenue", "CostOfGoodsAndServicesSold"), ("CostOfSales",)
    ),
    "gross_profit": ConceptChain(("GrossProfit",), ("GrossProfit",)),
    "operating_income": ConceptChain(
        ("OperatingIncomeLoss",), ("ProfitLossFromOperatingActivities",)
    ),
    "pretax_income": ConceptChain(
        (
            f"{_PRETAX}ExtraordinaryItemsNoncontrollingInterest",
            f"{_PRETAX}MinorityInterestAndIncomeLossFromEquityMethodInvestments",
        ),
        ("ProfitLossBeforeTax",),
    ),
    "income_tax": ConceptChain(
        ("IncomeTaxExpenseBenefit",), ("IncomeTaxExpenseContinuingOperations",)
    ),
    "net_income": ConceptChain(
        ("NetIncomeLoss", "ProfitLoss"), ("ProfitLossAttributableToOwnersOfParent", "ProfitLoss")
    ),
    "interest_expense": ConceptChain(
        ("InterestExpense", "InterestExpenseNonoperating"), ("InterestExpense", "FinanceCosts")
    ),
    "depreciation": ConceptChain(
        (
            "DepreciationDepletionAndAmortization",
            "DepreciationAmortizationAndAccretionNet",
            "DepreciationAndAmortization",
        ),
        ("DepreciationAndAmortisationExpense", "AdjustmentsForDepreciationAndAmortisationExpense"),
    ),
    "operating_cash_flow": ConceptChain(
        ("NetCashProvidedByUsedInOperatingActivities",), ("CashFlowsFromUsedInOperatingActivities",)
    ),
    "capital_expenditure": ConceptChain(
        ("PaymentsToAcquirePropertyPlantAndEquipment", "PaymentsToAcquireProductiveAssets"),
        ("PurchaseOfPropertyPlantAndEquipmentClassifiedAsInvestingActivities",),
    ),
    "diluted_shares": ConceptChain(
        ("WeightedAverageNumberOfDilutedSharesOutstanding",), ("AdjustedWeightedAverageShares",)
    ),
    "assets": ConceptChain(("Assets",), ("Assets",)),
    "current_assets": ConceptChain(("AssetsCurrent",), ("CurrentAssets",)),
    "current_liabilities": ConceptChain(("LiabilitiesCurrent",), ("CurrentLiabilities",)),
    "equity": ConceptChain(
        (
            "StockholdersEquity",
            "StockholdersEquityIncludingPortionAttributableToNoncontrollingInterest",
        ),
        ("EquityAttributableToOwnersOfParent", "Equity"),
    ),
    "cash": ConceptChain(("CashAndCashEquivalentsAtCarryingValue",), ("CashAndCashEquivalents",)),
    "long_term_debt": ConceptChain(
        ("LongTermDebtNoncurrent", "LongTermDebtAndCapitalLeaseObligations"),
        ("LongtermBorrowings",),
    ),
    "short_term_debt": ConceptChain(
        ("DebtCurrent", "LongTermDebtCurrent", "ShortTermBorrowings", "CommercialPaper"),
        ("CurrentPortionOfLongtermBorrowings", "ShorttermBorrowings"),
        parts=(
            ("LongTermDebtCurrent", "CurrentPortionOfLongtermBorrowings"),
            ("ShortTermBorrowings", "CommercialPaper", "ShorttermBorrowings"),
        ),
    ),
    "shares_outstanding": ConceptChain(
        ("CommonStockSharesOutstanding",),
        ("NumberOfSharesOutstanding",),
        dei="EntityCommonStockSharesOutstanding",
    ),
}
"""The chain of each figure."""
