"""The pages of approvals, orders and trades."""
