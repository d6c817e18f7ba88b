"""Texts as they leave the desk: quoted within a fence, or written only when somebody reads them."""
